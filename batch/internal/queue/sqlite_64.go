//go:build !(386 || arm || mips || mipsle)

package queue

import (
	"database/sql"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
)

func newSQLiteDriver(db *sql.DB) (riverdriver.Driver[*sql.Tx], error) {
	return riversqlite.New(db), nil
}

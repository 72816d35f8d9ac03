//go:build 386 || arm || mips || mipsle

package queue

import (
	"database/sql"
	"errors"

	"github.com/riverqueue/river/riverdriver"
)

// newSQLiteDriver fails: River's driver v0.49.0 for SQLite does not compile where an int has 32 bits.
func newSQLiteDriver(*sql.DB) (riverdriver.Driver[*sql.Tx], error) {
	return nil, errors.New("jobs in an SQLite file need a 64-bit platform; use PostgreSQL")
}

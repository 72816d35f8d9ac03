package queue

import (
	"database/sql"
	"errors"
	"strconv"
	"strings"
)

// insertInto returns a statement that inserts rows.
func insertInto(table string, columns []string, rows int) string {
	var text strings.Builder
	text.WriteString("INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES ")
	parameter := 1
	for i := range rows {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteByte('(')
		for j := range columns {
			if j > 0 {
				text.WriteString(", ")
			}
			text.WriteString("$" + strconv.Itoa(parameter))
			parameter++
		}
		text.WriteByte(')')
	}
	return text.String()
}

func isNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

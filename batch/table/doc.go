// Package table reads and writes the tables of offline jobs: CSV, TSV, JSON lines, OpenAI batch files, Parquet, and the results of SQL
// queries on SQLite and PostgreSQL.
//
//	t, err := table.Open(ctx, "people.csv", table.Options{})
//	defer t.Close()
//	summary, err := t.Check(ctx) // the first problem in the whole table, before anything is done with it
//	for row, err := range t.Rows(ctx) { ... }
//
// A table is read row by row, as often as wanted, and every pass gives the same rows. A file that changes between two passes, or while it
// is read, is reported as [ErrChanged]: its size, its time of change and its identity are compared. Standard input and the result of a
// query can be read only once, so they are copied to a temporary file first.
//
// # Cells
//
// A cell is a text in UTF-8. Its text is exact, and the same value always has the same text:
//
//   - CSV, TSV: the bytes of the field without its quotes; \r\n inside of quotes stays \r\n. There is no NULL. An empty line is skipped; in
//     a table with one column it is a row with an empty cell.
//   - JSON lines: a string without its quotes and escapes; null and a missing member are NULL; of all else, nested values also, the JSON as
//     it stands. The columns are the members of all lines, in the order in which they first appear; [Open] reads the file for that.
//   - Integers and decimals: all digits. Floating point: the shortest decimal that reads back as the same number; NaN, Infinity, -Infinity.
//   - Booleans: true, false.
//   - PostgreSQL: what the server writes, with time zone UTC and ISO dates. SQLite: the value as it is stored, whatever the column's
//     declared type.
//   - Binary values (bytea, BLOB, Parquet's arrays of fixed length): base64.
//
// Text that is not UTF-8 and NUL characters are refused in every format, and so are empty and repeated names of columns, rows whose
// number of fields is not that of the header, and cells and rows that are too large. An [*Error] names the source, the place, the column
// and the value. A table with a header and no rows is a table; a file without any bytes is not.
//
// Memory is bounded by the largest row, [Options.MaxRow]; [Table.Check] needs more for OpenAI batch input.
//
// # Parquet
//
// Columns that are lists, maps or groups are one cell, their JSON. Times are written as in RFC 3339, without a zone if the type has none.
// Texts and other arrays of bytes must be UTF-8. Memory is bounded by one page of each column.
//
// The library (parquet-go) trusts the sizes and counts in a file. Where it panics, that is an error with the file's name; a file that was
// made to do harm may take much memory, or time without end: read such files only from sources that you trust. Files with booleans in
// runs, which the library reads wrongly, are refused with [ErrFormat]: some writers make them in pages of version 2.
//
// Parquet is written from Parquet only. The columns of the input stay with their types and values; added columns are texts that may be
// NULL.
//
// # Queries
//
// A query must be one statement that only reads. On PostgreSQL it runs in a read-only transaction, on SQLite on a file that is opened
// read-only. [Open] runs it once.
//
// # Output
//
// [Create], [CreateResults] and [CreateFailures] write files that are complete, or not there at all.
package table

package table

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// openPostgres reads the result of a query into a snapshot.
func openPostgres(ctx context.Context, t *Table, dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The error of pgx may hold parts of a password if the text is no URL.
		return fmt.Errorf("%w: the connection string cannot be read; want postgres://user@host:port/database", ErrFormat)
	}
	t.source = fmt.Sprintf("postgres %s@%s:%d/%s", config.User, config.Host, config.Port, config.Database)
	maps.Copy(config.RuntimeParams, map[string]string{
		"timezone": "UTC", "datestyle": "ISO, YMD", "intervalstyle": "postgres", "extra_float_digits": "1", "bytea_output": "hex",
		"client_encoding": "UTF8", "default_transaction_read_only": "on", "application_name": "ragpilot batch",
	})
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(2*t.opts.MaxRow + 1<<20) // bytea comes as two digits a byte
		return f
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return hide(err, config.Password)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = conn.Close(ctx) // nothing was written
	}()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQuery, hide(err, config.Password))
	}
	// The prepared statement is one statement, and says which columns it returns before it runs.
	statement, err := tx.Prepare(ctx, "ragpilot_table", t.opts.Query)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQuery, err)
	}
	if len(statement.Fields) == 0 {
		return fmt.Errorf("%w: it returns no columns", ErrQuery)
	}
	columns := make([]string, len(statement.Fields))
	for i, f := range statement.Fields {
		columns[i] = f.Name
	}
	if err := t.setColumns("", columns); err != nil {
		return err
	}
	t.file, err = spill(t.opts.TempDir, func(w io.Writer) error { return t.queryRows(ctx, tx, statement.Fields, w) })
	t.reader = &snapshot{t}
	return err
}

// queryRows writes the rows of the statement, in the texts that PostgreSQL writes for them.
func (t *Table) queryRows(ctx context.Context, tx pgx.Tx, fields []pgconn.FieldDescription, w io.Writer) error {
	rows, err := tx.Query(ctx, "ragpilot_table", pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQuery, err)
	}
	defer rows.Close()
	out := &snapshotWriter{t: t, w: w}
	for rows.Next() {
		for i, raw := range rows.RawValues() {
			text, err := postgresText(fields[i].DataTypeOID, raw)
			if err == nil {
				err = out.cell(i, text, raw == nil)
			}
			if err != nil {
				return t.fail(fmt.Sprintf("row %d", out.rows+1), err)
			}
		}
		if err := out.end(); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return t.fail(fmt.Sprintf("row %d", out.rows+1), fmt.Errorf("%w: %w", ErrQuery, err))
	}
	return nil
}

// postgresText returns the text of a value.
func postgresText(oid uint32, raw []byte) (string, error) {
	switch oid {
	case pgtype.BoolOID:
		if len(raw) == 1 && raw[0] == 't' {
			return "true", nil
		}
		return "false", nil
	case pgtype.ByteaOID:
		b, err := hex.DecodeString(strings.TrimPrefix(string(raw), `\x`))
		return base64.StdEncoding.EncodeToString(b), err
	}
	return string(raw), nil
}

// hide replaces a password in an error.
func hide(err error, password string) error {
	if password == "" || !strings.Contains(err.Error(), password) {
		return err
	}
	return fmt.Errorf("%s", strings.ReplaceAll(err.Error(), password, "xxxxx"))
}

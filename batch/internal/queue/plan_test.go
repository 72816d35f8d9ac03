package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
)

// The statements of each answer and each subtree use an index, whatever the size of the job.
func TestPlans(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		plans(t, 20_000, filepath.Join(t.TempDir(), "jobs.db"), "EXPLAIN QUERY PLAN ", regexp.MustCompile(`SCAN (s|r|a|batch_\w+|river_job)\b`))
	})
	t.Run("postgres", func(t *testing.T) {
		schema := fmt.Sprint("batch_plans_", os.Getpid())
		dsn := storetest.Postgres(t)
		separator := "?"
		if strings.Contains(dsn, "?") {
			separator = "&"
		}
		// With fewer requests PostgreSQL reads the table from end to end, because that is faster.
		plans(t, 100_000, dsn+separator+"search_path="+schema, "EXPLAIN ",
			regexp.MustCompile(`Seq Scan on (batch_(request|row|subtree|answer)|river_job)`))
	})
}

func plans(t *testing.T, size int, dsn, explain string, slow *regexp.Regexp) {
	ctx := t.Context()
	q, err := Open(ctx, dsn, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if q.pool != nil {
			drop := "DO $$BEGIN EXECUTE 'DROP SCHEMA ' || current_schema() || ' CASCADE'; END$$"
			if _, err := q.write.ExecContext(context.Background(), drop); err != nil {
				t.Error(err)
			}
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	const each = 50
	job, err := q.Create(ctx, NewJob{Name: "plans"}, func(yield func(Request, error) bool) {
		for seq := range size {
			if !yield(Request{Seq: seq, Subtree: seq / each, Rows: []int{size - 1 - seq}, Text: "a request"}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	// Half of the requests are answered.
	if _, err := q.write.ExecContext(ctx, "INSERT INTO batch_answer ("+strings.Join(answerFields, ", ")+`)
		SELECT job, seq, text, 'stop', 1, 1, 1, TRUE, 1, 1, 'r', '', text, 0, 1 FROM batch_request WHERE seq < $1`, size/2); err != nil {
		t.Fatal(err)
	}
	if _, err := q.write.ExecContext(ctx, "ANALYZE"); err != nil {
		t.Fatal(err)
	}
	text := func(format string, args ...any) string { return fmt.Sprintf(format, args...) }
	for name, statement := range map[string]string{
		"requests of a subtree": strings.NewReplacer("$1", fmt.Sprint(job.ID), "$2", "8000", "$3", "8049").Replace(openRequests),
		"page of answers": text("SELECT "+answerColumns+" FROM batch_answer a WHERE a.job = %d AND a.seq > %d ORDER BY a.seq LIMIT %d",
			job.ID, size/4, pageSize),
		"page of rows": text("SELECT "+answerColumns+`, r.num FROM batch_row r JOIN batch_answer a ON a.job = r.job AND a.seq = r.seq
			WHERE r.job = %d AND r.num > %d ORDER BY r.num LIMIT %d`, job.ID, size*3/4, pageSize),
		"River jobs left": text(`SELECT 1 FROM river_job WHERE queue = '%s'
			AND state IN ('available', 'pending', 'retryable', 'running', 'scheduled') LIMIT 1`, queueName(job.ID)+"0"),
		"River jobs of the dead": "SELECT id FROM river_job WHERE state = 'running' AND kind = 'batch_subtree' AND " + q.dialect.lastTaker +
			" NOT IN (SELECT id FROM batch_process)",
		"next River jobs": text(`SELECT id FROM river_job WHERE state = 'available' AND queue = '%s' AND scheduled_at <= CURRENT_TIMESTAMP
			ORDER BY priority, scheduled_at, id LIMIT 4`, queueName(job.ID)),
		"deaths": text("SELECT COUNT(*) FROM batch_answer a WHERE a.job = %d AND a.seq BETWEEN %d AND %d", job.ID, 5000, 5049),
	} {
		var plan []string
		rows, err := q.read.QueryContext(ctx, explain+statement)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, fmt.Sprint(*values[len(values)-1].(*any)))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(plan, "\n"); slow.MatchString(all) || len(plan) == 0 {
			t.Errorf("%s: the plan reads a whole table:\n%s", name, all)
		}
	}
}

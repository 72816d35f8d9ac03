// Package queue keeps batch jobs, their requests and their answers in SQLite or PostgreSQL, and hands the work to workers by River
// (github.com/riverqueue/river).
//
//	q, err := queue.Open(ctx, "jobs.db", queue.Options{})
//	job, err := q.Create(ctx, queue.NewJob{Name: "reviews", Spec: spec}, requests)
//	err = q.Work(ctx, queue.WorkerOptions{Lanes: 4, Do: send}) // here, and in any other process
//	job, err = q.Wait(ctx, job.ID)
//
// # Tables
//
// In PostgreSQL all tables are in the schema ragpilot_batch, unless the DSN sets search_path.
//
//	batch_job       a job: name, spec, state, sizes
//	batch_request   (job, seq): a request, written once
//	batch_row       (job, row): which request answers the row
//	batch_subtree   (job, subtree): its first and last request
//	batch_answer    (job, seq): an answer or a failure, written once
//	batch_progress  (job, process, replica): sums over answers, changed in the transaction that stores the answers
//	batch_death     (job, subtree): processes that died while they had the subtree
//	batch_process   processes that work or load, and their heartbeats
//	river_job ...   River's own tables
//
// Each job has a River queue, batch-ID, with one River job per subtree, inserted in the order of execution. These are plain River jobs:
// River's UI shows them with their subtree and size as metadata. A River job says who works on a subtree; what is done is in
// batch_answer alone.
//
// # States
//
// A job is loading, then running. Pause and Resume take it to paused and back. It ends as finished, cancelled or failed, and stays so.
// It is finished when the database has as many answers and failures as requests, whatever River's jobs say.
//
// A job is loaded in several transactions, and is not seen by workers before the last. If its process dies, its requests are removed:
// by the next Open or Create, or by a worker.
//
// # Who runs when
//
// A worker looks at the jobs four times a second and adds the queues of those that run to its River client. A gate before River's fetch
// limits the subtrees of a worker to its lanes, and gives a free lane to the job that has fewest, so that jobs share a worker evenly.
// Within a job subtrees are taken in their order. When a job is paused or cancelled, or the worker stops, [Subtree].Stop is closed:
// Do sends nothing more, and what is in flight is stored.
//
// # What is guaranteed
//
// Store returns when the answer is committed; answers that arrive together share a commit. An answer is stored once: the first one stays.
//
// A worker that is killed leaves River jobs that count as running. Its heartbeat stops, and after five that are missing (on SQLite at
// once, if the process is of the same machine and gone) another worker makes them available again, as the next in the order. So a death
// repeats the calls that were in flight, and no more. A worker that only seemed dead, because its machine stood still, repeats likewise
// what was given to another.
//
// A request that ends its process each time does not do so for ever. After five deaths in a subtree without a new answer its requests run
// one at a time, with nothing else in their process. A request that ends two more processes so is stored as failed with the code "deaths",
// and the others go on. Each start is noted before it, and the note goes when Do returns, so that a stop does not count.
//
// While the database cannot be reached, or its disk is full, Store waits and tries again, and no new calls start.
//
// Do that fails, or panics, is tried again, up to five times; then the requests without an answer are stored as failed, with the reason.
// An engine that is away ([ErrAway]) uses up no attempts: other workers take the subtree, and this one waits until its probe succeeds.
// River jobs that are deleted or cancelled by hand come back while their requests have no answer; to end a job, use Cancel.
package queue

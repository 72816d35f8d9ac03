// Package journal is an append-only log of opaque records on disk, for state that must survive kill -9.
//
//	j, err := journal.Open(dir, journal.Options{MaxRecords: 100_000, Version: 1})
//	n, err := j.Replay(func(rec []byte) error { return state.apply(rec) })
//	err = j.Append(rec) // in the kernel's hands when it returns
//	err = j.Close()
//
// # What is kept
//
// A record is handed to the kernel by one write before [Journal.Append] returns, so a killed process loses none that was
// acknowledged. It does not wait for the disk: a machine that loses power loses what was appended since [Journal.Sync], or
// what its kernel had not written by itself (on Linux, some 30 s). The oldest records go first; at least the last
// MaxRecords/2 of them are kept, if they fit into MaxBytes/2.
//
// # Files
//
//	dir/lock                      locked while a process has the journal open; holds its process ID
//	dir/0000000000000007.journal  a segment: 32 bytes of header, then records
//	dir/0000000000000003.journal.old  a segment of another version or format, kept for people to look at
//
//	header   magic (7 bytes), format (1), version (4), zero (4), number of the segment (8), xxh3 of these (8)
//	record   length (4), number in the segment from 1 (4), xxh3 of these (4), xxh3 of the bytes (8), bytes
//
// All numbers are little-endian. A record's checksums are seeded by its segment's number and version, that of its bytes
// by its own number, too: bytes of another segment are no record, and a record is recognised wherever it stands.
//
// # Damage
//
// [Journal.Recovery] says what Open found. The end of the last segment that a writer has left half written is cut off. Bytes
// that cannot be read anywhere else are skipped: all sound records in front of them and behind them are replayed, each once
// and in the order in which they were appended, also if they stand in another place by now. Records that are gone are noticed
// by their numbers; only those at the very end of a segment are not. A segment whose header is damaged is read as one of
// the version in Options, which its records confirm or not. The damaged segment stays as it is, and goes on being appended
// to if it is the last.
//
// Open and Replay read record by record, and from a damage on the rest of the segment into memory. They take time in proportion to the
// bytes, whatever these are.
//
// A segment of another version or of an earlier format is set aside and the journal starts empty.
//
// # Why no library
//
// Logs of databases expect that a damaged log is repaired from elsewhere, or given up. With one flipped bit among 1,000 records,
// goleveldb's journal loses the rest of its 32 KiB block (237 records); tidwall/wal has no checksums, returns the damaged record as
// sound, and does not open at all if the bit is in a length. The tests of this package lose one record.
//
// # Caveats
//
// The checksums find accidents, not forgeries: who can write to the directory can write records. Bytes in a record that
// imitate another record come to light as one when the real one is damaged. Text without zero bytes, such as JSON, cannot
// imitate any. Files are made with mode 0600, the directory with 0700. A lock excludes other processes of one machine, and,
// on a network's file system, perhaps none.
package journal

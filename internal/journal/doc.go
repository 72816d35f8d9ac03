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
//	dir/0000000000000003.journal.old  a segment of another version, kept for whoever wants to look
//
//	header   magic (8 bytes), version (4), zero (4), number of the segment (8), xxh3 of these (8)
//	record   length (4), xxh3 (8), bytes
//
// All numbers are little-endian. A record's checksum is seeded by its segment's number and its offset: old bytes that a
// disk brings back after a power loss, or bytes copied to another place, are no record.
//
// # Damage
//
// [Journal.Recovery] tells what Open found. The end of the last segment that a writer has left half written is cut off.
// From a segment with a bad record elsewhere, everything in front of it is replayed and nothing behind it: a replay is,
// for each segment, a beginning of what was written. A segment of another version is set aside and the journal
// starts empty.
//
// # Caveats
//
// The checksums find accidents, not forgeries: who can write to the directory can write records. Files are made with
// mode 0600, the directory with 0700. A lock excludes other processes of one machine, and, on a network's file
// system, perhaps nobody.
package journal

package state

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// A process with these variables is the one to be killed.
const childDir, childRecords = "RAGPILOT_STATE_DIR", "RAGPILOT_STATE_RECORDS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, child(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// long is after how many records one comes whose write takes long enough to be interrupted.
const long = 500

// numberedRecord is 8 bytes of number and some that follow from it.
func numberedRecord(n uint64) []byte {
	r := rand.New(rand.NewPCG(n, 1))
	size := r.IntN(300)
	if n%long == 0 {
		size = 1<<20 + r.IntN(3<<20)
	}
	return append(binary.LittleEndian.AppendUint64(nil, n), bytes.Repeat([]byte{byte(n)}, size)...)
}

// checkNumbers replays and returns the first and last number; all between must be there.
func checkNumbers(t testing.TB, n *notes) (first, last uint64) {
	t.Helper()
	damaged, err := n.each(func(rec []byte) {
		number := binary.LittleEndian.Uint64(rec)
		if last != 0 && number != last+1 {
			t.Errorf("%d after %d", number, last)
		}
		if !bytes.Equal(rec, numberedRecord(number)) {
			t.Errorf("record %d has other bytes", number)
		}
		if first == 0 {
			first = number
		}
		last = number
	})
	if err != nil || damaged != 0 {
		t.Fatalf("%d records damaged, %v", damaged, err)
	}
	return first, last
}

// child appends numbered records without end, and writes each number to standard output when it was acknowledged.
func child(dir string) error {
	limit, err := strconv.Atoi(os.Getenv(childRecords))
	if err != nil {
		return err
	}
	list, _, err := openNotes(dir, int64(limit), 1<<30)
	if err != nil {
		return err
	}
	var last uint64
	if _, err := list.each(func(rec []byte) { last = binary.LittleEndian.Uint64(rec) }); err != nil {
		return err
	}
	for n := last + 1; ; n++ {
		if err := list.append(numberedRecord(n)); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, n); err != nil {
			return err
		}
	}
}

// A process that is killed at any time, again and again, loses nothing that append has returned for.
func TestKilledProcessLosesNothing(t *testing.T) {
	for _, limit := range []int{1_000_000, 500} {
		t.Run(fmt.Sprintf("records=%d", limit), func(t *testing.T) {
			dir := t.TempDir()
			rounds := 12
			for round := range rounds {
				inLong := round%2 == 1
				acknowledged := runAndKill(t, dir, limit, func(n int, last uint64) bool {
					if inLong {
						return last%long == long-1
					}
					return n == 200+37*round
				})
				n, aside, err := openNotes(dir, int64(limit), 1<<30)
				if err != nil || aside != nil {
					t.Fatal(err, aside)
				}
				first, last := checkNumbers(t, n)
				if err := n.close(); err != nil {
					t.Fatal(err)
				}
				if last < acknowledged || last > acknowledged+1 {
					t.Fatalf("round %d: acknowledged up to %d, replayed up to %d", round, acknowledged, last)
				}
				if keep := min(uint64(limit/2), last); last-first+1 < keep {
					t.Fatalf("round %d: only %d…%d are kept", round, first, last)
				}
			}
		})
	}
}

// runAndKill kills a child with SIGKILL when it has acknowledged n records of which the last has a certain number; it
// returns the last one that was acknowledged.
func runAndKill(t *testing.T, dir string, limit int, when func(n int, last uint64) bool) uint64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childRecords+"="+strconv.Itoa(limit))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	var last uint64
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n') // until the end: what it wrote before it died counts
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if last, err = strconv.ParseUint(line[:len(line)-1], 10, 64); err != nil {
			t.Fatal(err)
		}
		if when(n, last) {
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		t.Fatalf("the child said %s", stderr.Bytes())
	}
	return last
}

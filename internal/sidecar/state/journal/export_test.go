package journal

// Size returns how many records are kept, in how many segments, and the bytes these take on disk.
func (j *Journal) Size() (records, segments int, bytes int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.sealed {
		records, segments, bytes = records+s.records, segments+1, bytes+s.size
	}
	if j.f != nil {
		records, segments, bytes = records+j.active.records, segments+1, bytes+j.active.size
	}
	return records, segments, bytes
}

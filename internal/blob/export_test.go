package blob

// Size returns the length of the value in bytes.
func (s *Stream) Size() int64 { return s.record.Size }

package sstable

// Info returns what the file is, as its writer did. It reads the footer again.
func (r *Reader) Info() (*FileInfo, error) {
	b := make([]byte, footerSize)
	if err := readFull(r.file, b, r.size-footerSize); err != nil {
		return nil, r.ioError(r.size-footerSize, err)
	}
	f, err := decodeFooter(b, r.size)
	if err != nil {
		return nil, r.corrupt(r.size-footerSize, err.Error(), nil)
	}
	return &FileInfo{Properties: *r.props, ID: r.id, Size: r.size, TailSize: int64(f.tailLength)}, nil
}

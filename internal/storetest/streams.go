package storetest

// A ReaderFunc is an io.Reader.
type ReaderFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f ReaderFunc) Read(p []byte) (int, error) { return f(p) }

// A WriterFunc is an io.Writer.
type WriterFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f WriterFunc) Write(p []byte) (int, error) { return f(p) }

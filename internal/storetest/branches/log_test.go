package branches

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"strings"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
)

// A logCatcher keeps what is logged.
type logCatcher struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer. It never fails.
func (c *logCatcher) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(p)
}

// Logger returns a logger that writes its records to the catcher, as text.
func (c *logCatcher) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(c, nil)) }

// Has reports whether the logged text contains text.
func (c *logCatcher) Has(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Contains(c.buf.String(), text)
}

// resum makes the checksum of a checkpoint's header right.
func resum(b []byte) { binary.LittleEndian.PutUint32(b[72:], base.Checksum(0, 0, b[:72])) }

package copies

import (
	"time"
)

// Key returns the string's name in Redis.
func (e *Entry) Key() string { return e.key }

// now is the mirror's clock.
func (m *Server) now() time.Duration { return time.Since(m.born) }

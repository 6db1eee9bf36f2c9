package owners

import "time"

// A calendar and a clock say when windows begin and end, by a server's clock: which of them an operation asks, which
// one gets its adds, and how long that one lives. Programs whose own clocks differ agree about it.

// A calendar numbers windows: periods of the server's time, counted from 1970.
type calendar struct {
	Period time.Duration
	Keep   int // windows that are asked
}

// A span is the windows of one operation, by number.
type span struct {
	First, Last int64         // are asked
	Add         int64         // gets adds
	Life        time.Duration // of values of the window Add that are made now
}

// Number returns the number of the window of a time.
func (c calendar) Number(t time.Time) int64 { return t.UnixNano() / int64(c.Period) }

// Span returns the windows of an operation. It begins when the server's time is between earliest and latest, and
// Redis executes it before ahead has passed.
//
// An add goes to the window of the earliest time, so no window gets an add before it begins. A lookup asks up to the
// window of the latest time, and so every window that had got an add. It asks the last Keep windows before. So a key
// is found for at least Keep-1 periods after its add began, less the error of the clock, and a window may go when the
// Keep-1 windows after it are over.
func (c calendar) Span(earliest, latest time.Time, ahead time.Duration) span {
	add := c.Number(earliest)
	end := time.Unix(0, (add+int64(c.Keep))*int64(c.Period))
	return span{
		First: add - int64(c.Keep) + 1,
		Last:  c.Number(latest.Add(ahead)),
		Add:   add,
		Life:  end.Sub(earliest),
	}
}

// Len returns the number of windows that are asked.
func (s span) Len() int { return int(s.Last - s.First + 1) }

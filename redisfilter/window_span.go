package redisfilter

import "time"

// A calendar numbers windows: periods of the server's time, counted from 1970.
type calendar struct {
	period time.Duration
	keep   int
}

// A span is the windows of one operation, by number.
type span struct {
	first, last int64         // are asked
	add         int64         // gets adds
	life        time.Duration // of values of the window add that are made now
}

func (c calendar) number(t time.Time) int64 { return t.UnixNano() / int64(c.period) }

// span returns the windows for an operation that begins when the server's time is between two times,
// and that Redis executes before ahead has passed.
//
// An add goes to the window of the earliest time that it may be, so no window gets an add before it
// begins; whoever asks up to the window of the latest time that it may be has asked all that had got one. The
// last keep windows of whoever asks are asked. So a key is found for at least keep-1 periods after its add
// began, whose reading of the clock was not perfect, and a window may go when the last keep-1 windows
// after it are over.
func (c calendar) span(earliest, latest time.Time, ahead time.Duration) span {
	add := c.number(earliest)
	end := time.Unix(0, (add+int64(c.keep))*int64(c.period))
	return span{
		first: add - int64(c.keep) + 1,
		last:  c.number(latest.Add(ahead)),
		add:   add,
		life:  end.Sub(earliest),
	}
}

func (s span) windows() int { return int(s.last - s.first + 1) }

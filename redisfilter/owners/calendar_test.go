package owners

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
)

func TestSpan(t *testing.T) {
	at := func(hours float64) time.Time { return time.Unix(0, int64(hours*float64(time.Hour))) }
	c := calendar{Period: time.Hour, Keep: 3}
	require.Equal(t, span{First: 8, Add: 10, Last: 10, Life: 150 * time.Minute}, c.Span(at(10.5), at(10.5), 0))
	require.Equal(t, span{First: 7, Add: 9, Last: 10, Life: 135 * time.Minute}, c.Span(at(9.75), at(10.25), 0))
	require.Equal(t, span{First: 8, Add: 10, Last: 11, Life: 150 * time.Minute},
		c.Span(at(10.5), at(10.5), time.Hour/2))
	require.Equal(t, span{First: 10, Add: 10, Last: 10, Life: time.Hour},
		calendar{time.Hour, 1}.Span(at(10), at(10), 0))
	require.Equal(t, 3, c.Span(at(10.5), at(10.5), 0).Len())
}

// A program is a process in a simulation: its clock is wrong, and goes wrong.
type program struct {
	clock *clock
	now   *time.Time // true, and the server's
}

func drawProgram(t *rapid.T, now *time.Time) program {
	skew := time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "skew"))
	drift := rapid.Float64Range(-maxDrift/2, maxDrift/2).Draw(t, "drift")
	start := *now
	local := func() time.Time {
		elapsed := now.Sub(start)
		return now.Add(skew + time.Duration(drift*float64(elapsed)))
	}
	p := program{now: now}
	p.clock = &clock{Now: local, Ask: func(context.Context) (time.Time, error) {
		p.passes(t, "on the way there")
		server := now.Truncate(time.Microsecond)
		p.passes(t, "on the way back")
		return server, nil
	}}
	return p
}

func (p program) passes(t *rapid.T, what string) {
	*p.now = p.now.Add(time.Duration(rapid.Int64Range(0, int64(200*time.Millisecond)).Draw(t, what)))
}

func TestServerTimeIsWithinItsBounds(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		now := time.Unix(1e9, rapid.Int64Range(0, 1e9).Draw(t, "start"))
		p := drawProgram(t, &now)
		for range 20 {
			earliest, latest, err := p.clock.Bounds(t.Context())
			require.NoError(t, err)
			require.False(t, earliest.After(now), "%v after %v", earliest, now)
			require.False(t, latest.Before(now), "%v before %v", latest, now)
			require.Less(t, latest.Sub(earliest), 500*time.Millisecond)
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*maxReading)).Draw(t, "passes")))
		}
	})
}

// A simulation is Windows of programs with different clocks, over a Redis that is a list of adds.
type simulation struct {
	calendar
	now   time.Time
	added []simulatedAdd
}

type simulatedAdd struct {
	window  int64
	expires time.Time
	begun   time.Time
}

// A simulatedOp has been sent and not executed yet.
type simulatedOp struct {
	kind     int
	at       span
	begun    time.Time
	deadline time.Time
	known    int // adds that were acknowledged before it was sent
}

const (
	simulatedLookup = iota
	simulatedAddNew
	simulatedPlainAdd
)

const simulatedTimeout = 300 * time.Millisecond

func (s *simulation) begin(t *rapid.T, p program) simulatedOp {
	op := simulatedOp{kind: rapid.IntRange(0, 2).Draw(t, "operation"), begun: s.now, known: len(s.added)}
	earliest, latest, err := p.clock.Bounds(t.Context())
	require.NoError(t, err)
	ahead := time.Duration(0)
	if op.kind == simulatedAddNew {
		ahead = simulatedTimeout
	}
	op.at = s.Span(earliest, latest, ahead)
	op.deadline = s.now.Add(simulatedTimeout)
	return op
}

// execute does what Redis does. A key must be found that was added less than Keep-1 periods before;
// half a second of that is for readings of clocks that took so long.
func (s *simulation) execute(t *rapid.T, op simulatedOp) {
	must, found := false, false
	for i, a := range s.added {
		there := a.window >= op.at.First && a.window <= op.at.Last && s.now.Before(a.expires)
		due := s.now.Sub(a.begun) < time.Duration(s.Keep-1)*s.Period-time.Second/2
		found = found || there
		must = must || due && (i < op.known || op.kind == simulatedAddNew)
	}
	if op.kind != simulatedPlainAdd {
		require.True(t, found || !must, "%+v does not find what was added: %+v", op, s.added)
	}
	if op.kind == simulatedPlainAdd || op.kind == simulatedAddNew && !found {
		s.added = append(s.added, simulatedAdd{op.at.Add, s.now.Add(op.at.Life), op.begun})
	}
}

// Whatever the clocks of programs say: a key is found for Keep-1 periods after its add was
// acknowledged, and no caller is told that it is new meanwhile.
func TestProgramsWithAnyClocksAgree(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		s := &simulation{calendar: calendar{
			Period: time.Duration(rapid.Int64Range(1e9, 5e9).Draw(t, "period")),
			Keep:   rapid.IntRange(2, 4).Draw(t, "keep"),
		}}
		s.now = time.Unix(1e9, rapid.Int64Range(0, 1e10).Draw(t, "start"))
		programs := make([]program, 3)
		for i := range programs {
			programs[i] = drawProgram(t, &s.now)
		}
		var sent []simulatedOp
		for range 40 {
			if len(sent) == 0 || rapid.Bool().Draw(t, "send") {
				sent = append(sent, s.begin(t, rapid.SampledFrom(programs).Draw(t, "program")))
			} else {
				i := rapid.IntRange(0, len(sent)-1).Draw(t, "executed")
				s.execute(t, sent[i])
				sent = slices.Delete(sent, i, i+1)
			}
			passes := int64(simulatedTimeout) / 4
			if len(sent) == 0 {
				passes = int64(s.Period)
			}
			s.now = s.now.Add(time.Duration(rapid.Int64Range(0, passes).Draw(t, "passes")))
			sent = slices.DeleteFunc(sent, func(op simulatedOp) bool { return op.deadline.Before(s.now) })
		}
	})
}

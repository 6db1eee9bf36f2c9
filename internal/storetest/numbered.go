package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/operand"
)

// NumWriters is how many writers make numbered writes at the same time, each in a sequence of its own.
const NumWriters = 4

// numberedSlots is how many keys a writer's writes go through in turn.
const numberedSlots = 64

func slotKey(w, slot int) string  { return fmt.Sprintf("slot/%d/%02d", w, slot) }
func twinKey(w, slot int) string  { return fmt.Sprintf("twin/%02d/%d", slot, w) }
func briefKey(w, slot int) string { return fmt.Sprintf("brief/%d/%02d", w, slot) }
func lastKey(w int) string        { return fmt.Sprintf("last/%d", w) }

// Every write n adds n to its writer's counter and to the one of all.
func countKey(w int) string { return fmt.Sprintf("count/%d", w) }

const countAllKey = "count/all"

// NumberedClock is the time of a round, which stands still.
func NumberedClock(round int) func() time.Time {
	return func() time.Time { return time.Unix(1e9+int64(round), 0) }
}

// numberedLife is for how many rounds the value lives that write n gives a time to: up to four beyond its own.
func numberedLife(n int) int { return 1 + n%5 }

// numberedValue is what write n of a writer stores.
func numberedValue(w, n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(w), uint64(n)))
	b := fmt.Appendf(nil, "%d %d ", w, n)
	for range rng.IntN(1200) {
		b = append(b, byte('a'+rng.IntN(4)))
	}
	return b
}

// numberedSum is what a writer's counter holds after write n, if each addition was made once.
func numberedSum(n int) int64 { return int64(n) * int64(n+1) / 2 }

// A Batch takes the parts of a write. It is a *kv.Batch, of a store that merges with kv.Int64Add.
type Batch interface {
	Set(key, value []byte) error
	Delete(key []byte) error
	DeleteRange(lo, hi []byte) error
	Merge(key, operand []byte) error
	SetTTL(key, value []byte, ttl time.Duration) error
}

// NumberedWrite puts write n of a writer into a batch. All keys of the writer change together, and the effects depend
// on w and n alone: Numbered computes them.
func NumberedWrite(to Batch, w, n int) error {
	slot, value := n%numberedSlots, numberedValue(w, n)
	err := to.Set([]byte(lastKey(w)), []byte(strconv.Itoa(n)))
	if n%31 == 0 {
		twin := fmt.Sprintf("twin/40/%d", w)
		err = errors.Join(err, to.DeleteRange([]byte(slotKey(w, 20)), []byte(slotKey(w, 30))),
			to.DeleteRange([]byte(twin), []byte(twin+"\x00")))
	}
	if n%5 == 0 {
		err = errors.Join(err, to.Delete([]byte(twinKey(w, n*7%numberedSlots))))
	}
	err = errors.Join(err, to.Set([]byte(slotKey(w, slot)), value), to.Set([]byte(twinKey(w, slot)), value),
		to.SetTTL([]byte(briefKey(w, slot)), value, time.Duration(numberedLife(n))*time.Second))
	if n%97 == 0 { // a value under the operands, which changes no sum
		err = errors.Join(err, to.Set([]byte(countKey(w)), operand.AppendInt64(nil, numberedSum(n-1))))
	}
	increment := operand.AppendInt64(nil, int64(n))
	return errors.Join(err, to.Merge([]byte(countKey(w)), increment), to.Merge([]byte(countAllKey), increment))
}

// A numberedModel is what numbered writes leave in a round, except counters: these depend on all writes before.
type numberedModel struct {
	Model
	round, written int // this round, and the one in which the write was made
}

func (m *numberedModel) Set(key, value []byte) error {
	m.Model[string(key)] = string(value)
	return nil
}

func (m *numberedModel) Delete(key []byte) error {
	delete(m.Model, string(key))
	return nil
}

func (m *numberedModel) DeleteRange(lo, hi []byte) error {
	m.Model.DeleteRange(lo, hi)
	return nil
}

func (m *numberedModel) Merge(_, _ []byte) error { return nil }

func (m *numberedModel) SetTTL(key, value []byte, ttl time.Duration) error {
	delete(m.Model, string(key))
	if m.round < m.written+int(ttl/time.Second) {
		m.Model[string(key)] = string(value)
	}
	return nil
}

// Numbered is what a store holds in a round when last[w] is the last write of writer w. Writes were made in the rounds
// that writtenIn returns; nil: all in round 0.
func Numbered(last []int, round int, writtenIn func(w, n int) int) Model {
	m := &numberedModel{Model: Model{}, round: round}
	all := int64(0)
	for w, n := range last {
		// Every slot is set once in numberedSlots writes, so that earlier ones do not matter.
		for i := max(1, n-numberedSlots); i <= n; i++ {
			if writtenIn != nil {
				m.written = writtenIn(w, i)
			}
			_ = NumberedWrite(m, w, i) // a model takes everything
		}
		if n > 0 {
			m.Model[countKey(w)] = string(operand.AppendInt64(nil, numberedSum(n)))
		}
		all += numberedSum(n)
	}
	if all > 0 {
		m.Model[countAllKey] = string(operand.AppendInt64(nil, all))
	}
	return m.Model
}

// LastNumbered returns the number of a writer's last write, of those that get finds.
func LastNumbered(get func(key []byte) ([]byte, error), w int) (int, error) {
	v, err := get([]byte(lastKey(w)))
	if errors.Is(err, base.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(v))
}

package stress

import "slices"

// A consumerRecord is what the consumer of a slot in an object store goes on with: it ends with the writer's process.
type consumerRecord struct {
	Name     string
	There    bool
	Position uint64 // when it acknowledged last, or tried to
	IDs      []uint64
	Cells    map[string]cellRecord
	Acked    uint64
	Seen     []uint64
}

// tell has the next process learn what the consumer goes on with.
func (c *consumer) tell(r *round) {
	if j := r.oracle.journal; j != nil {
		j.write(record{Kind: recordConsumer, Consumer: &consumerRecord{c.name, c.there, c.noted.position, c.noted.ids,
			recordCells(c.noted.cells), c.acked, c.seen}})
	}
}

// tellLoss has the next process learn that a slot is lost for a reason, which the store does not keep. This process may
// end before the consumer notices.
func (r *round) tellLoss(slot string) {
	if j := r.oracle.journal; j != nil {
		j.write(record{Kind: recordConsumer, Consumer: &consumerRecord{Name: slot}})
	}
}

// saw notes that a snapshot or a change had an operation. The next process learns it, acknowledged or not.
func (c *consumer) saw(r *round, space int, id uint64) {
	if c.seen == nil {
		c.seen = make([]uint64, len(r.oracle.spaces))
	}
	if id > c.seen[space] {
		c.seen[space] = id
		r.oracle.journal.write(record{Kind: recordYielded, Name: c.name, Space: space, Op: opRecord{ID: id}})
	}
}

// learnYielded takes in what a consumer saw.
func (l *life) learnYielded(r record) {
	for _, c := range l.consumers {
		if c.name == r.Name && c.there {
			c.seen[r.Space] = max(c.seen[r.Space], r.Op.ID)
		}
	}
}

// learn takes in what a consumer goes on with. The process before may have seen more meanwhile.
func (l *life) learn(r *consumerRecord) {
	for _, c := range l.consumers {
		if c.name == r.Name {
			seen := slices.Clone(r.Seen)
			for n := range seen {
				if c.there {
					seen[n] = max(seen[n], c.seen[n])
				}
			}
			c.there, c.acked, c.seen = r.There, r.Acked, seen
			c.noted = replica{r.Position, r.IDs, cellsOf(r.Cells)}
			c.now = c.noted.clone()
		}
	}
}

// state is oracle.state with the consumers, and the operations that some of them have not.
func (l *life) state() *stateRecord {
	s := l.oracle.state()
	for n, k := range l.oracle.spaces {
		var past []opRecord
		for _, op := range k.past {
			if slices.ContainsFunc(l.consumers, func(c *consumer) bool { return c.there && c.noted.ids[n] < op.id }) {
				past = append(past, recordOf(op, true))
			}
		}
		s.Past = append(s.Past, past)
	}
	for _, c := range l.consumers {
		if c.there {
			s.Consumers = append(s.Consumers, consumerRecord{c.name, c.there, c.noted.position, c.noted.ids,
				recordCells(c.noted.cells), c.acked, c.seen})
		}
	}
	return s
}

// restore makes a state the base of what comes.
func (l *life) restore(s *stateRecord) {
	l.oracle.restore(s)
	for n, k := range l.oracle.spaces {
		for i := range s.Past[n] {
			op := operationOf(&s.Past[n][i])
			op.end, op.state = s.Past[n][i].End, s.Past[n][i].State
			k.past = append(k.past, op)
		}
	}
	for i := range s.Consumers {
		l.learn(&s.Consumers[i])
	}
}

func recordCells(c cells) map[string]cellRecord {
	r := map[string]cellRecord{}
	for key, c := range c {
		r[key] = cellRecord{c.base, c.set, c.expiry, c.operands}
	}
	return r
}

func cellsOf(r map[string]cellRecord) cells {
	c := cells{}
	for key, r := range r {
		c[key] = cell{r.Base, r.Set, r.Expiry, r.Operands}
	}
	return c
}

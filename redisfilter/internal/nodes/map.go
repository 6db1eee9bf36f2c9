package nodes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Map says which server answers for which slot, as one poll saw it. It does not change.
type Map struct {
	nodes []node
	owner *[Slots]uint16 // index of nodes + 1; 0: none. Nil: the first node owns all slots
}

// A node is a master.
type node struct {
	addr      string
	id        string    // its node id in a cluster
	identity  string    // empty when the poll could not learn it
	confirmed time.Time // when the request was sent that its identity answered
	started   time.Time // when its process began
	replica   bool      // it answered that it is none
}

// Owner returns the identity of the master that owns a slot and the time since when it is known to
// be that; ok is false if no node is known to own it.
func (m *Map) Owner(slot int) (identity string, confirmed time.Time, ok bool) {
	i := 0
	if m.owner != nil {
		i = int(m.owner[slot]) - 1
	}
	if i < 0 || i >= len(m.nodes) || m.nodes[i].identity == "" {
		return "", time.Time{}, false
	}
	return m.nodes[i].identity, m.nodes[i].confirmed, true
}

// NoMaster returns nil if Owner knows that of a slot, or else why not: ErrReplica if a replica answered in
// place of the only server.
func (m *Map) NoMaster(slot int) error {
	if m.Replica() {
		return ErrReplica
	}
	if _, _, ok := m.Owner(slot); !ok {
		return fmt.Errorf("no master is known for slot %d", slot)
	}
	return nil
}

// Replica reports whether the only server is a replica.
func (m *Map) Replica() bool { return m.owner == nil && len(m.nodes) == 1 && m.nodes[0].replica }

// ErrReplica is what a replica replies to writes.
var ErrReplica error = readOnly{}

type readOnly struct{}

func (readOnly) Error() string { return "READONLY the server is a replica" }

func (readOnly) RedisError() {}

// Address returns where in a cluster the master with an identity is, as host:port.
func (m *Map) Address(identity string) string {
	for _, n := range m.nodes {
		if n.identity == identity {
			return n.addr
		}
	}
	return ""
}

// Identities returns the identities of all masters, and whether every one is known and every slot has an owner.
func (m *Map) Identities() (all []string, complete bool) {
	complete = len(m.nodes) > 0
	for _, n := range m.nodes {
		complete = complete && n.identity != ""
		all = append(all, n.identity)
	}
	if m.owner != nil {
		for _, o := range m.owner {
			complete = complete && o != 0
		}
	}
	return all, complete
}

// Since reports whether the process of every one of the identities has run since t.
func (m *Map) Since(t time.Time, identities []string) bool {
	for _, n := range m.nodes {
		if slices.Contains(identities, n.identity) && !n.started.Before(t) {
			return false
		}
	}
	return true
}

// Confirmed returns since when all that m says is known.
func (m *Map) Confirmed() time.Time {
	oldest := time.Now()
	for _, n := range m.nodes {
		if n.confirmed.Before(oldest) {
			oldest = n.confirmed
		}
	}
	return oldest
}

// master reports whether a master answered at an address.
func (m *Map) master(addr string) bool {
	return slices.ContainsFunc(m.nodes, func(n node) bool { return n.addr == addr && n.identity != "" })
}

func (m *Map) knows(identity string) bool {
	for _, n := range m.nodes {
		if n.identity == identity {
			return identity != ""
		}
	}
	return false
}

// uptime returns how long a server has run, as its answer to INFO server says in whole seconds, or
// zero: a process that may have just begun.
func uptime(info string) time.Duration {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, "uptime_in_seconds:"); ok {
			seconds, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 32)
			return time.Duration(max(0, seconds)) * time.Second
		}
	}
	return 0
}

// Identity returns what names a server's data in its answers to INFO server and INFO replication:
// empty for a replica, or if a field is missing.
func Identity(info string) string {
	run, history, role := "", "", ""
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		switch key {
		case "run_id":
			run = value
		case "master_replid":
			history = value
		case "role":
			role = value
		}
	}
	if run == "" || history == "" || role != "master" {
		return ""
	}
	return run + "/" + history
}

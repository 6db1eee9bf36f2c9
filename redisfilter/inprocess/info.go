package inprocess

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// stats counts commands.
type stats struct {
	mu    sync.Mutex
	calls map[string]int64 // by name, in upper case
}

func (st *stats) count(cmd string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.calls == nil {
		st.calls = map[string]int64{}
	}
	st.calls[cmd]++
}

func (st *stats) reset() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.calls = nil
}

// newID returns 40 random hexadecimal digits, as Redis names servers and histories.
func newID() string {
	id := make([]byte, 20)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// info replies to INFO, except for what miniredis knows better.
func (s *Server) info(c *server.Peer, args []string) (done bool) {
	sections := map[string]func() string{
		"server": func() string {
			return fmt.Sprintf("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"+
				"process_id:%d\r\nrun_id:%s\r\ntcp_port:%s\r\nuptime_in_seconds:%d\r\n",
				os.Getpid(), s.runID, s.m.Port(), int(time.Since(s.started).Seconds()))
		},
		"clients": func() string { return fmt.Sprintf("# Clients\r\nconnected_clients:%d\r\n", s.srv.ClientsLen()) },
		"stats": func() string {
			return fmt.Sprintf("# Stats\r\ntotal_connections_received:%d\r\ntotal_commands_processed:%d\r\n",
				s.srv.TotalConnections(), s.srv.TotalCommands())
		},
		"replication": func() string {
			return "# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_replid:" + s.replID +
				"\r\nmaster_replid2:" + strings.Repeat("0", len(s.replID)) + "\r\n"
		},
		"cluster":      func() string { return "# Cluster\r\ncluster_enabled:0\r\n" },
		"commandstats": s.stats.text,
	}
	standard := []string{"server", "clients", "stats", "replication", "cluster"}
	var wanted []string
	for _, arg := range args {
		switch name := strings.ToLower(arg); name {
		case "default":
			wanted = append(wanted, standard...)
		case "all", "everything":
			wanted = append(append(wanted, standard...), "commandstats")
		default:
			wanted = append(wanted, name)
		}
	}
	if len(args) == 0 {
		wanted = standard
	}
	var texts []string
	for _, name := range wanted {
		if text := sections[name]; text != nil {
			texts = append(texts, text())
		}
	}
	return s.reply(c, strings.Join(texts, "\r\n"))
}

// reply answers a command that reads nothing of the keys. In a transaction it queues the answer.
func (s *Server) reply(c *server.Peer, text string) (done bool) {
	if conn := s.connections.known(c); conn != nil && conn.queueing {
		s.srv.Dispatch(c, []string{"ECHO", text})
		return true
	}
	c.WriteBulk(text)
	return true
}

func (st *stats) text() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	var b strings.Builder
	b.WriteString("# Commandstats\r\n")
	for _, cmd := range slices.Sorted(maps.Keys(st.calls)) {
		fmt.Fprintf(&b, "cmdstat_%s:calls=%d,usec=0\r\n", strings.ToLower(cmd), st.calls[cmd])
	}
	return b.String()
}

// config is CONFIG RESETSTAT. There is nothing else to configure.
func (s *Server) config(c *server.Peer, _ string, args []string) {
	if len(args) != 1 || !strings.EqualFold(args[0], "RESETSTAT") {
		c.WriteError("ERR the in-process server has no CONFIG but RESETSTAT")
		return
	}
	s.stats.reset()
	c.WriteOK()
}

package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// CPU returns the time that the thread that runs commands has used since the server started, in user and system mode.
func (s *Server) CPU(ctx context.Context) time.Duration {
	s.t.Helper()
	info := s.Info(ctx, "cpu")
	suffix := "_main_thread" // from Redis 6.2 on
	if _, ok := info["used_cpu_user"+suffix]; !ok {
		suffix = ""
	}
	total := time.Duration(0)
	for _, mode := range []string{"user", "sys"} {
		text := info["used_cpu_"+mode+suffix]
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			s.t.Fatalf("redistest: %s: INFO cpu says used_cpu_%s%s:%q: %v", s.Addr, mode, suffix, text, err)
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total
}

// CommandCounts returns how often each command ran since the start or ResetStats, by its name in
// lower case. Commands inside scripts count. A redis-server names
// subcommands too, as in "client|setinfo".
func (s *Server) CommandCounts(ctx context.Context) map[string]int64 {
	s.t.Helper()
	counts := map[string]int64{}
	for field, value := range s.Info(ctx, "commandstats") {
		name, ok := strings.CutPrefix(field, "cmdstat_")
		if !ok {
			continue
		}
		var calls int64
		if _, err := fmt.Sscanf(value, "calls=%d,", &calls); err != nil {
			s.t.Fatalf("redistest: %s: INFO commandstats says %s:%s: %v", s.Addr, field, value, err)
		}
		counts[name] = calls
	}
	return counts
}

// ResetStats sets the counts of commands to zero.
func (s *Server) ResetStats(ctx context.Context) {
	s.t.Helper()
	s.do(ctx, "CONFIG", "RESETSTAT")
}

// MemoryUsage returns the bytes that the key and its value occupy, the allocator's rounding
// included; 0 if there is no key.
func (s *Server) MemoryUsage(ctx context.Context, key string) int64 {
	s.t.Helper()
	n, err := s.client.MemoryUsage(ctx, key, 0).Result()
	if err == redis.Nil { //nolint:errorlint // go-redis returns it bare
		return 0
	}
	if err != nil {
		s.t.Fatalf("redistest: %s: MEMORY USAGE %s: %v", s.Addr, key, err)
	}
	return n
}

// Info returns the fields of a section of INFO.
func (s *Server) Info(ctx context.Context, section string) map[string]string {
	s.t.Helper()
	info, err := infoSection(ctx, s.client, section)
	if err != nil {
		s.t.Fatalf("redistest: %s: INFO %s: %v", s.Addr, section, err)
	}
	return info
}

func infoSection(ctx context.Context, c *redis.Client, section string) (map[string]string, error) {
	text, err := c.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	return fields(text), nil
}

// fields parses the lines name:value.
func fields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// Command peer runs go-zero's Bloom filter for the benchmarks of redisfilter.
//
// It is a program in a module of its own, so that redisfilter's go.mod does not name the forty modules
// that go-zero brings. It reads requests from its standard input, JSON one a line, the first of which
// says what to open, and answers each with a line, until its input ends.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/siftkv/siftkv/redisfilter/internal/workload"
)

// An opening is the first request.
type opening struct {
	Addr string // of Redis
	Key  string // of the filter
	Bits uint
}

func main() {
	if err := serve(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	requests, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var o opening
	if err := requests.Decode(&o); err != nil {
		return fmt.Errorf("read what to open: %w", err)
	}
	s, err := open(o)
	if err != nil {
		return err
	}
	for requests.More() {
		var r workload.Request
		if err := requests.Decode(&r); err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		result, err := run(ctx, s, r)
		if err != nil {
			result.Error = err.Error()
		}
		if err := answers.Encode(result); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
	return nil
}

func run(ctx context.Context, s *subject, r workload.Request) (workload.Result, error) {
	if r.Op == workload.Fill {
		return workload.Result{}, s.fill(ctx, workload.Keys(r.First, r.Count))
	}
	return workload.Run(ctx, s, r)
}

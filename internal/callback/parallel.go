package callback

import (
	"errors"
	"sync"
)

// Parallel calls do for 0 to n-1, each in a goroutine, and up to limit at a time. It returns when all have. A panic or
// runtime.Goexit of the application's functions in such a goroutine passes on to the caller's.
func Parallel(n, limit int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var wait sync.WaitGroup
	running := make(chan struct{}, limit)
	errs := make([]error, n)
	for i := range n {
		running <- struct{}{}
		wait.Go(func() {
			defer func() { <-running }()
			errs[i] = Do("Options", func() error {
				do(i)
				return nil
			})
		})
	}
	wait.Wait()
	Resume(errors.Join(errs...))
}

// Package metrics has the figures of a store, as kv.DB.Metrics returns them: pure data, which belongs to the caller.
//
//	before := db.Metrics()
//	...
//	m := db.Metrics().Sub(before)
//	fmt.Println(m.ReadAmplification(), m.Lookup().FalsePositiveRate())
package metrics

package kv

// modelMerger is associative and not commutative, so that an operand in a wrong place
// shows.
var modelMerger = Append(",")

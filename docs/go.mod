// The pages of the project, and the programs that make their pictures and traces. They are a module, which is not
// released, so that the root's module does without them.
module github.com/siftkv/siftkv/docs

go 1.26.0

require (
	github.com/siftkv/siftkv v0.1.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/siftkv/siftkv => ../

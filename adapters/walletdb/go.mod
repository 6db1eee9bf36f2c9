module github.com/siftkv/siftkv/adapters/walletdb

go 1.26.0

require (
	github.com/btcsuite/btcwallet/walletdb v1.4.2
	github.com/siftkv/siftkv v0.1.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/siftkv/siftkv => ../../

// The suite of gocosmos, in a module of its own, so that the hub's go.mod lists
// only what the hub is made of. Run it by `make conformance-gocosmos`.
module github.com/messagehub/messagehub/.ci/gocosmos

go 1.26.7

require (
	github.com/btnguyen2k/consu/checksum v0.1.2 // indirect
	github.com/btnguyen2k/consu/gjrc v0.1.1 // indirect
	github.com/btnguyen2k/consu/olaf v0.1.3 // indirect
	github.com/btnguyen2k/consu/reddo v0.1.4 // indirect
	github.com/btnguyen2k/consu/semita v0.1.4 // indirect
	github.com/btnguyen2k/gocosmos v0.3.0 // indirect
)

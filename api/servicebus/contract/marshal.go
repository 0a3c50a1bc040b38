package contract

import "google.golang.org/protobuf/proto"

// Marshal writes a message, the same one always in the same bytes. It cannot fail unless
// a text is not UTF-8.
func Marshal(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

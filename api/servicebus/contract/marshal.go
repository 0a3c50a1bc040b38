package contract

import "google.golang.org/protobuf/proto"

// Marshal encodes a message. The same message always results in the same bytes. Marshal fails only
// if a string is not UTF-8.
func Marshal(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
)

// Codec decodes and changes encoded application properties for the bus.
type Codec struct{}

var _ bus.Codec = Codec{}

// Decode implements bus.Codec.
func (Codec) Decode(section []byte) (map[string]any, error) {
	m, err := applicationProperties(section)
	if err != nil {
		return nil, err
	}
	decoded := make(map[string]any, len(m))
	for _, e := range m {
		if name, ok := e.Key.(string); ok {
			decoded[name] = toFilterValue(e.Value)
		}
	}
	return decoded, nil
}

// Merge implements bus.Codec. Unchanged properties keep their position and type.
func (Codec) Merge(section []byte, changes map[string]any, remove []string) ([]byte, error) {
	m, err := applicationProperties(section)
	if err != nil {
		return nil, err
	}
	merged := make(amqp.Map, 0, len(m)+len(changes))
	for _, e := range m {
		name, _ := e.Key.(string)
		if _, changed := changes[name]; !changed && !slices.Contains(remove, name) {
			merged = append(merged, e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		v, err := toWireValue(changes[name])
		if err != nil {
			return nil, fmt.Errorf("property %s: %w", name, err)
		}
		merged = append(merged, amqp.Entry{Key: name, Value: v})
	}
	if len(merged) == 0 {
		return nil, nil
	}
	var s amqp.Sections
	s.SetApplicationProperties(merged)
	return s.ApplicationProperties, nil
}

func applicationProperties(section []byte) (amqp.Map, error) {
	if len(section) == 0 {
		return nil, nil
	}
	s := amqp.Sections{ApplicationProperties: section}
	return s.ReadApplicationProperties()
}

// toFilterValue converts an AMQP value to a type that filters support, if possible.
func toFilterValue(v any) any {
	switch v := v.(type) {
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case uint8:
		return uint64(v)
	case uint16:
		return uint64(v)
	case uint32:
		return uint64(v)
	case float32:
		return float64(v)
	case amqp.Symbol:
		return string(v)
	case amqp.Timestamp:
		return fromTimestamp(v)
	}
	return v
}

// toWireValue converts a value of the bus to an AMQP value that every client can read.
func toWireValue(v any) (any, error) {
	switch v := v.(type) {
	case time.Time:
		return toTimestamp(v), nil
	case nil, bool, string, []byte, float32, float64, uint8, uint16, uint32, uint64, int8, int16, int32, int64,
		amqp.Symbol, amqp.Timestamp, amqp.UUID:
		return v, nil
	}
	return nil, fmt.Errorf("%w: a %T is not a valid property", bus.ErrInvalid, v)
}

func toTimestamp(t time.Time) amqp.Timestamp    { return amqp.Timestamp(t.UnixMilli()) }
func fromTimestamp(ms amqp.Timestamp) time.Time { return time.UnixMilli(int64(ms)).UTC() }

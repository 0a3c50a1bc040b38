package amqp

import (
	"fmt"
	"reflect"
	"strings"
)

// Describe formats a performative as one line of text.
func Describe(p Performative) string {
	if p == nil {
		return "empty"
	}
	v := reflect.ValueOf(p).Elem()
	var b strings.Builder
	b.WriteString(strings.ToLower(v.Type().Name()))
	for i := range v.NumField() {
		if f := v.Field(i); v.Type().Field(i).IsExported() && !f.IsZero() {
			fmt.Fprintf(&b, " %s=%s", v.Type().Field(i).Name, fieldText(f))
		}
	}
	return b.String()
}

// String returns the address and, if there is one, the filter.
func (s *Source) String() string {
	if s.Filter == nil {
		return s.Address
	}
	return fmt.Sprintf("%s%v", s.Address, s.Filter)
}

// String returns the address.
func (t *Target) String() string { return t.Address }

// String returns "coordinator".
func (*Coordinator) String() string { return "coordinator" }

func fieldText(v reflect.Value) string {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if e, ok := v.Interface().(*Error); ok && e != nil {
			return "{" + e.Error() + "}"
		}
		if s, ok := v.Interface().(fmt.Stringer); ok {
			return s.String()
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return fmt.Sprintf("%x", v.Bytes())
	}
	return fmt.Sprintf("%v", v.Interface())
}

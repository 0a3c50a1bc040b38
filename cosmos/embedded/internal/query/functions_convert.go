package query

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

var conversionFunctions = map[string]function{
	"TOSTRING":        {1, 1, toString},
	"STRINGTONUMBER":  parseAs(Number),
	"STRINGTOBOOLEAN": parseAs(Bool),
	"STRINGTONULL":    parseAs(Null),
	"STRINGTOARRAY":   parseAs(Array),
	"STRINGTOOBJECT":  parseAs(Object),
	"DOCUMENTID":      {1, 1, documentID},
}

// toString returns a value as JSON, and NaN and Infinity by their names.
func toString(a []Value) Value {
	switch v := a[0]; {
	case v.Kind == Undefined || v.Kind == String:
		return v
	case math.IsNaN(v.Num):
		return textValue("NaN")
	case math.IsInf(v.Num, 1):
		return textValue("Infinity")
	case math.IsInf(v.Num, -1):
		return textValue("-Infinity")
	}
	return Value{Kind: String, Text: a[0].Append(nil)}
}

// parseAs returns a function that parses a string as JSON. The result is undefined unless it has the kind want.
func parseAs(want Kind) function {
	return newStringFunction(func(s []byte) Value {
		raw, err := rawjson.Compact(nil, bytes.TrimSpace(s))
		if err != nil {
			return undefined
		}
		v := ParseValue(raw)
		if v.Kind != want {
			return undefined
		}
		return v
	})
}

// documentID returns the number in the last eight bytes of a _rid, in the byte order of the engine.
func documentID(a []Value) Value {
	if a[0].Kind != Object {
		return undefined
	}
	rid := ParseValue(followStep(a[0].Text, rawjson.Step{Name: "_rid"}))
	id, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(string(rid.Text), "-", "/"))
	if rid.Kind != String || err != nil || len(id) != 16 {
		return undefined
	}
	return numberValue(float64(binary.BigEndian.Uint64(id[8:])))
}

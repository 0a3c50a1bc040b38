// Package rawjson reads and writes JSON text in place, without building values.
//
// The engine stores documents as the text a client sent. Most requests need one or two
// properties of a document, or none, while the document may carry half a megabyte of base64. So
// the package has two kinds of functions:
//
//   - Compact reads text of unknown origin. It is strict: its result is valid JSON without white
//     space, and all numbers are exact as IEEE doubles.
//   - All others read text that Compact returned, and skip strings with bytes.IndexByte. For
//     other text they may return wrong results or an error, but they never panic.
package rawjson

import "fmt"

// MaxDepth is the maximum nesting of arrays and objects, as in Cosmos DB.
const MaxDepth = 128

// A SyntaxError contains the offset at which text is not valid JSON, and the reason.
type SyntaxError struct {
	Offset int
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

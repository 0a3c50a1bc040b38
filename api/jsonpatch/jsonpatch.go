// Package jsonpatch applies JSON Patches (RFC 6902) to documents.
package jsonpatch

import jsonpatch "github.com/evanphx/json-patch/v5"

// maxCopied limits how much the copy operations of one call add to a document,
// in bytes.
const maxCopied = 64 << 10

// Apply returns a document after operations, a JSON array of patch operations.
// It fails if one of them fails.
func Apply(document, operations []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false // RFC 6902 does not have negative indices
	options.AccumulatedCopySizeLimit = maxCopied
	options.EscapeHTML = false
	return patch.ApplyWithOptions(document, options)
}

// Package jsonpatch applies JSON Patches (RFC 6902) to documents.
package jsonpatch

import jsonpatch "github.com/evanphx/json-patch/v5"

// maxCopied is the maximum number of bytes that the copy operations of one call may add to a
// document.
const maxCopied = 64 << 10

// Apply applies operations, a JSON array of patch operations, to a document and returns the result.
// It fails if any operation fails.
func Apply(document, operations []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false // RFC 6902 does not define negative indices
	options.AccumulatedCopySizeLimit = maxCopied
	options.EscapeHTML = false
	return patch.ApplyWithOptions(document, options)
}

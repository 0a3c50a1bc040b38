package objects

import "github.com/messagehub/messagehub/cosmos/client"

// DocumentKinds returns the kinds of documents that this package stores, with the highest
// format of each that this version knows.
func DocumentKinds() []client.DocumentKind {
	return []client.DocumentKind{
		bucketDocument, objectDocument, rowDocument, headDocument, sweepDocument, jobDocument,
		jobsDocument, requestDocument, stateDocument, changeDocument,
	}
}

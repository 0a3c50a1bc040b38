package push

import "github.com/messagehub/messagehub/cosmos/client"

// DocumentKinds returns the kinds of documents that this package stores. Each kind includes the highest
// format that this version of the hub can read.
func DocumentKinds() []client.DocumentKind {
	return []client.DocumentKind{
		cursorDocument, retryDocument, deadDocument, entryDocument, definitionDocument, ownerDocument,
		nodeDocument, assignmentDocument, partyDocument, resourceDocument, changeDocument, turnDocument,
		headDocument, pageDocument, idDocument, watchDocument, watchedDocument, watchPageDocument,
	}
}

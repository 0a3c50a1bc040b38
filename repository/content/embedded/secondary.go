package embedded

import (
	"encoding/xml"
	"net/http"
	"strings"
)

// secondarySuffix follows the account's name in the URLs of the secondary endpoint. The secondary
// endpoint permits only reads, and always returns the current data.
const secondarySuffix = "-secondary"

// toPrimary converts a path on the secondary endpoint to the path on the primary endpoint. It returns any
// other path unchanged.
func (a *Account) toPrimary(path string) (_ string, isSecondary bool) {
	rest, isSecondary := strings.CutPrefix(path, "/"+a.options.Account+secondarySuffix)
	if !isSecondary || rest != "" && rest[0] != '/' {
		return path, false
	}
	return "/" + a.options.Account + rest, true
}

// checkSecondary refuses a request that the secondary endpoint does not permit.
func checkSecondary(r *http.Request) error {
	if !isRead(r.Method) && r.Method != http.MethodOptions {
		return newBlobError(http.StatusForbidden, "InsufficientAccountPermissions", "Write operations are not allowed on the secondary endpoint")
	}
	return nil
}

// getServiceStats returns the replication state of the secondary endpoint. Only the secondary endpoint
// supports this request.
func (a *Account) getServiceStats(c *blobCall) (*blobResponse, error) {
	if _, isSecondary := a.toPrimary(c.URL.Path); !isSecondary {
		return nil, newBlobError(400, "InvalidQueryParameterValue", "only the secondary endpoint, %s%s, has statistics of replication (comp=stats)", a.options.Account, secondarySuffix)
	}
	type replication struct{ Status, LastSyncTime string }
	var document struct {
		XMLName        xml.Name `xml:"StorageServiceStats"`
		GeoReplication replication
	}
	document.GeoReplication = replication{"live", a.options.Clock().UTC().Format(http.TimeFormat)}
	return newXMLResponse(http.StatusOK, document)
}

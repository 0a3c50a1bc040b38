package embedded

import (
	"encoding/xml"
	"net/http"
	"strings"
)

// secondarySuffix is appended to the account name in URLs of the secondary endpoint. This endpoint permits only reads,
// and returns the same data as the primary endpoint.
const secondarySuffix = "-secondary"

// toPrimary converts a path on the secondary endpoint to a path on the primary one. It does not change other paths.
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

// getServiceStats returns the replication state, which only the secondary endpoint supports.
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

package embedded

import (
	"encoding/xml"
	"net/http"
	"strings"
)

// secondarySuffix follows the account's name in the URLs of its secondary endpoint. That permits
// reads only, and is never behind.
const secondarySuffix = "-secondary"

// toPrimary returns the path of a request to the secondary endpoint as one of the primary.
func (a *Account) toPrimary(path string) (_ string, isSecondary bool) {
	rest, isSecondary := strings.CutPrefix(path, "/"+a.options.Account+secondarySuffix)
	if !isSecondary || rest != "" && rest[0] != '/' {
		return path, false
	}
	return "/" + a.options.Account + rest, true
}

// checkSecondary refuses what the secondary endpoint does not permit.
func checkSecondary(r *http.Request) error {
	if !isRead(r.Method) && r.Method != http.MethodOptions {
		return newBlobError(http.StatusForbidden, "InsufficientAccountPermissions", "Write operations are not allowed on the secondary endpoint")
	}
	return nil
}

// getServiceStats answers with the state of the secondary endpoint. Only the secondary endpoint
// serves it.
func (a *Account) getServiceStats(c *blobCall) (*blobAnswer, error) {
	if _, isSecondary := a.toPrimary(c.URL.Path); !isSecondary {
		return nil, newBlobError(400, "InvalidQueryParameterValue", "only the secondary endpoint, %s%s, has statistics of replication (comp=stats)", a.options.Account, secondarySuffix)
	}
	type replication struct{ Status, LastSyncTime string }
	var document struct {
		XMLName        xml.Name `xml:"StorageServiceStats"`
		GeoReplication replication
	}
	document.GeoReplication = replication{"live", a.options.Clock().UTC().Format(http.TimeFormat)}
	return withXML(http.StatusOK, document)
}

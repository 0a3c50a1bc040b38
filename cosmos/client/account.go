package client

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// The consistency levels with which a read returns every acknowledged write.
const (
	strong           = "Strong"
	boundedStaleness = "BoundedStaleness" // reads are current in the write region only
)

// accountProperties are the properties that an account reports. azcosmos reads them before the first
// request and every few minutes afterwards.
type accountProperties struct {
	ID     string `json:"id"`
	Policy struct {
		Level string `json:"defaultConsistencyLevel"`
	} `json:"userConsistencyPolicy"`
	Writable []region `json:"writableLocations"`
	Readable []region `json:"readableLocations"`
}

// A region is a location of an account.
type region struct {
	Name string `json:"name"`
}

// readsWhereItWrites reports whether reads go to the write region. [Connect] sets no preferred regions,
// so azcosmos sends reads to the first readable region.
func (a *accountProperties) readsWhereItWrites() bool {
	return len(a.Readable) == 1 ||
		len(a.Readable) > 1 && len(a.Writable) > 0 && a.Readable[0].Name == a.Writable[0].Name
}

// findFault returns the reason why the hub cannot use the account, or nil if it can.
func (a *accountProperties) findFault() error {
	if len(a.Writable) < 2 {
		return nil
	}
	var names []string
	for _, r := range a.Writable {
		names = append(names, r.Name)
	}
	return fmt.Errorf("account %s: %w (%s); disable multi-region writes", a.ID, errSeveralWriteRegions, strings.Join(names, ", "))
}

// errSeveralWriteRegions reports an account with several write regions. On such an account, two
// conditional writes of one document can both succeed, and one write is lost.
var errSeveralWriteRegions = errors.New("it accepts writes in several regions, where conditional writes are not reliable")

// ReadsMayBeStale reports whether a plain read may return an older state than an earlier read did. With
// bounded staleness, reads may be stale if they go to another region than writes. It returns true until
// the properties of the account are known.
func (db *Database) ReadsMayBeStale() bool {
	account := db.properties.Load()
	switch cmp.Or(db.consistency, account.Policy.Level) {
	case strong:
		return false
	case boundedStaleness:
		return !account.readsWhereItWrites()
	}
	return true
}

// An accountObserver records the properties of the account when azcosmos reads them, because azcosmos
// does not return them. While the properties have a fault, the accountObserver refuses all other
// requests.
type accountObserver struct {
	next policy.Transporter
	db   *Database
}

func (o *accountObserver) Do(req *http.Request) (*http.Response, error) {
	isAccount := req.Method == http.MethodGet && (req.URL.Path == "/" || req.URL.Path == "")
	if !isAccount {
		if err := o.db.properties.Load().findFault(); err != nil {
			return nil, err
		}
	}
	resp, err := o.next.Do(req)
	if err != nil || !isAccount || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	const limit = 1 << 20
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var account accountProperties
	if json.Unmarshal(body, &account) == nil && account.Policy.Level != "" {
		o.db.properties.Store(&account)
	}
	return resp, nil
}

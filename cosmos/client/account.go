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

// The consistency levels with which a read shows every write that was acknowledged before.
const (
	strong           = "Strong"
	boundedStaleness = "BoundedStaleness" // in the write region
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

// readsWhereItWrites reports whether reads go to the write region. Without preferred regions, of which
// [Connect] sets none, azcosmos sends them to the first readable location.
func (a *accountProperties) readsWhereItWrites() bool {
	return len(a.Readable) == 1 ||
		len(a.Readable) > 1 && len(a.Writable) > 0 && a.Readable[0].Name == a.Writable[0].Name
}

// findFault returns the reason why the hub cannot work on the account, nil if it can.
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

// errSeveralWriteRegions reports an account with several write regions. There, two conditional writes
// of one document can both succeed, and one of them is lost.
var errSeveralWriteRegions = errors.New("it accepts writes in several regions, where conditional writes are not reliable")

// ReadsMayBeStale reports whether a plain read may return an older state than a client has seen before.
// On an account with bounded staleness, it may if reads go to another region than writes, which lacks
// the newest writes. It returns true for an account whose properties are not known yet.
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
// does not return them. While they have a fault, it sends no other request.
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

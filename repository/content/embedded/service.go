package embedded

import (
	"encoding/xml"
	"io"
	"net/http"
)

// accountItself is the name under which a store stores the properties of the account. No container can have this name.
const accountItself = "."

// serviceProperties are the properties of the Blob service, in the form that clients send and receive. Logging, metrics
// and the default version are stored but have no effect.
type serviceProperties struct {
	XMLName xml.Name `xml:"StorageServiceProperties" json:"-"`

	Logging               *loggingProperties  `json:"logging,omitempty"`
	HourMetrics           *metricsProperties  `json:"hourMetrics,omitempty"`
	MinuteMetrics         *metricsProperties  `json:"minuteMetrics,omitempty"`
	CORS                  *corsRules          `xml:"Cors" json:"cors,omitempty"`
	DefaultServiceVersion string              `xml:",omitempty" json:"defaultServiceVersion,omitempty"`
	DeleteRetentionPolicy *retentionPolicy    `json:"deleteRetentionPolicy,omitempty"`
	StaticWebsite         *websiteProperties  `json:"staticWebsite,omitempty"`
	Unknown               []unknownXMLElement `xml:",any" json:"-"`
}

type loggingProperties struct {
	Version         string          `json:"version,omitempty"`
	Delete          bool            `json:"delete,omitempty"`
	Read            bool            `json:"read,omitempty"`
	Write           bool            `json:"write,omitempty"`
	RetentionPolicy retentionPolicy `json:"retentionPolicy"`
}

type metricsProperties struct {
	Version         string          `json:"version,omitempty"`
	Enabled         bool            `json:"enabled,omitempty"`
	IncludeAPIs     *bool           `xml:",omitempty" json:"includeAPIs,omitempty"`
	RetentionPolicy retentionPolicy `json:"retentionPolicy"`
}

type retentionPolicy struct {
	Enabled bool `json:"enabled,omitempty"`
	Days    *int `xml:",omitempty" json:"days,omitempty"`
}

type websiteProperties struct {
	Enabled bool `json:"enabled,omitempty"`
}

type unknownXMLElement struct{ XMLName xml.Name }

const maxServiceProperties = 32 << 10 // maxServiceProperties is the maximum size of the XML in bytes

// getServiceProperties returns the properties of the service.
func (a *Account) getServiceProperties(*blobCall) (*blobResponse, error) {
	shown := serviceProperties{
		Logging: &loggingProperties{Version: "1.0"}, HourMetrics: &metricsProperties{Version: "1.0"}, MinuteMetrics: &metricsProperties{Version: "1.0"},
		CORS: &corsRules{}, DeleteRetentionPolicy: &retentionPolicy{}, StaticWebsite: &websiteProperties{},
	}
	if stored := a.service.Load(); stored != nil {
		shown.replaceWith(stored)
	}
	return newXMLResponse(http.StatusOK, shown)
}

// setServiceProperties replaces those service properties that the request contains.
func (a *Account) setServiceProperties(c *blobCall) (*blobResponse, error) {
	var given serviceProperties
	body := io.LimitReader(contextReader{c.Context(), c.Body}, maxServiceProperties)
	if err := xml.NewDecoder(body).Decode(&given); err != nil {
		return nil, newBlobError(400, "InvalidXmlDocument", "the properties of the service cannot be read: %s", err)
	}
	if err := given.validate(); err != nil {
		return nil, err
	}
	a.index.making.Lock()
	defer a.index.making.Unlock()
	changed := serviceProperties{}
	if stored := a.service.Load(); stored != nil {
		changed = *stored
	}
	changed.replaceWith(&given)
	if err := a.breakIfUnsettled(publishContainer(a.store, accountItself, &version{Service: &changed})); err != nil {
		return nil, err
	}
	a.service.Store(&changed)
	return newResponse(http.StatusAccepted), nil
}

// replaceWith replaces the properties of p that are set in given.
func (p *serviceProperties) replaceWith(given *serviceProperties) {
	if given.Logging != nil {
		p.Logging = given.Logging
	}
	if given.HourMetrics != nil {
		p.HourMetrics = given.HourMetrics
	}
	if given.MinuteMetrics != nil {
		p.MinuteMetrics = given.MinuteMetrics
	}
	if given.CORS != nil {
		p.CORS = given.CORS
	}
	if given.DefaultServiceVersion != "" {
		p.DefaultServiceVersion = given.DefaultServiceVersion
	}
	if given.DeleteRetentionPolicy != nil {
		p.DeleteRetentionPolicy = given.DeleteRetentionPolicy
	}
	if given.StaticWebsite != nil {
		p.StaticWebsite = given.StaticWebsite
	}
}

// validate returns an error for properties that this account does not support.
func (p *serviceProperties) validate() error {
	switch {
	case len(p.Unknown) > 0:
		return notImplemented("the property %.60q of the service", p.Unknown[0].XMLName.Local)
	case p.DeleteRetentionPolicy != nil && p.DeleteRetentionPolicy.Enabled:
		return notImplemented("soft deletion (DeleteRetentionPolicy)")
	case p.StaticWebsite != nil && p.StaticWebsite.Enabled:
		return notImplemented("static websites (StaticWebsite)")
	case p.CORS != nil:
		return p.CORS.validate()
	}
	return nil
}

package azure

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/source"
)

// Link implements [repository.Source].
func (s *Store) Link(ctx context.Context, name domain.ObjectName, version domain.VersionID, opts repository.LinkOptions) (string, error) {
	c, ok := s.containerClient(name.Bucket())
	if !ok {
		return "", source.NoBucket("the account " + s.account + " has no such bucket")
	}
	if version != (domain.VersionID{}) {
		return "", errNoVersion
	}
	_, inAccount, _ := strings.Cut(name.Bucket(), "/")
	now := s.clock().UTC()
	values := sas.BlobSignatureValues{
		Protocol: sas.ProtocolHTTPS, ExpiryTime: now.Add(opts.Expires), Permissions: "r",
		ContainerName: inAccount, BlobName: name.Key(),
		ContentDisposition: opts.Disposition, ContentType: opts.ContentType, ContentEncoding: opts.ContentEncoding,
	}
	if strings.HasPrefix(s.service.URL(), "http:") {
		values.Protocol = sas.ProtocolHTTPSandHTTP
	}
	query, err := s.signLink(ctx, now, values)
	if err != nil {
		return "", err
	}
	return c.NewBlobClient(name.Key()).URL() + "?" + query.Encode(), nil
}

func (s *Store) signLink(ctx context.Context, now time.Time, values sas.BlobSignatureValues) (query sas.QueryParameters, err error) {
	if s.key != nil {
		query, err = values.SignWithSharedKey(s.key)
	} else {
		var key *service.UserDelegationCredential
		if last := now.Add(maxKeyTime - clockSkew); values.ExpiryTime.After(last) {
			values.ExpiryTime = last // a new key may expire earlier
		}
		if key, err = s.keys.getKey(ctx, s.service, now, values.ExpiryTime); err != nil {
			return query, err
		}
		query, err = values.SignWithUserDelegation(key)
	}
	if err != nil {
		return query, domain.Errorf(domain.Invalid, "the link cannot be signed: %w", err)
	}
	return query, nil
}

const (
	maxKeyTime = repository.MaxLinkTime // the limit of Azure for a user delegation key
	clockSkew  = 5 * time.Minute        // maximum time by which the clock of the account may be behind
)

// delegatedKeys caches the last user delegation key of an identity. A link expires with its key.
type delegatedKeys struct {
	mu      sync.Mutex
	key     *service.UserDelegationCredential
	expires time.Time
}

// getKey returns a key that is valid until a time. If the last key expires earlier, it requests a new
// one.
func (k *delegatedKeys) getKey(ctx context.Context, account *service.Client, now, until time.Time) (*service.UserDelegationCredential, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil && !k.expires.Before(until) {
		return k.key, nil
	}
	start := now.Add(-clockSkew)
	expires := start.Add(maxKeyTime)
	key, err := account.GetUserDelegationCredential(ctx, service.KeyInfo{
		Start: to.Ptr(start.Format(sas.TimeFormat)), Expiry: to.Ptr(expires.Format(sas.TimeFormat)),
	}, nil)
	if err != nil {
		return nil, classifyError(ctx, err)
	}
	k.key, k.expires = key, expires
	return key, nil
}

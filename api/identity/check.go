package identity

import (
	"context"
	"errors"
)

// CheckIssuer fetches the discovery document and the keys of an issuer, as an [Authenticator] does.
// It returns the number of keys that may sign tokens. Its error tells an operator what is wrong.
func CheckIssuer(ctx context.Context, client Doer, issuer string) (keys int, err error) {
	found, err := fetchKeys(ctx, client, issuer)
	if err == nil && len(found) == 0 {
		err = errNoKey
	}
	return len(found), err
}

var errNoKey = errors.New("it has no key for RS256, PS256 or ES256")

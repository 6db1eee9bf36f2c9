package s3

import (
	"net/http"
	"strings"
)

// minSecret is the length below which a word is not taken for a secret: replacing it would garble texts and reveal
// what it is.
const minSecret = 8

// secretsOf returns what a request says of its credentials: the signature and the identity in it, and the token of a
// session. The secret key is in no request.
func secretsOf(r *http.Request) (secrets []string) {
	add := func(secret string) {
		if len(secret) >= minSecret {
			secrets = append(secrets, secret)
		}
	}
	add(r.Header.Get("X-Amz-Security-Token"))
	authorization := r.Header.Get("Authorization")
	for field := range strings.FieldsFuncSeq(authorization, func(c rune) bool { return c == ' ' || c == ',' }) {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "Credential":
			identity, _, _ := strings.Cut(value, "/")
			add(identity)
		case "Signature":
			add(value)
		}
	}
	return secrets
}

// clean returns a text without the credentials of the request that it is about, should a server have repeated them.
func (a *attempt) clean(text string) string {
	if secrets := a.secrets.Load(); secrets != nil {
		for _, secret := range *secrets {
			text = strings.ReplaceAll(text, secret, "[removed]")
		}
	}
	return text
}

package agent

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// Signer parses the private key of the account, in PKCS #8 or PKCS #1.
func (a ServiceAccount) Signer() (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(a.PrivateKey))
	if block == nil {
		return nil, errors.New("no PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(*rsa.PrivateKey)
	if !ok || signer.N.BitLen() < 2048 {
		return nil, errors.New("not an RSA key of 2048 bits or more")
	}
	return signer, nil
}

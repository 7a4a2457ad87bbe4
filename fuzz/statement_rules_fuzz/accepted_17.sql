COMMENT ON COLUMN accounts.owner IS 'x';
AWS IAM GRANT x TO 'arn:aws:iam::1:role/r';
aws iam revoke x from 'arn:aws:iam::1:role/r';

"""A token by AWS's own signer for Python."""

import os

import botocore.session

client = botocore.session.get_session().create_client("dsql", os.environ["AWS_REGION"])
sign = (
    client.generate_db_connect_admin_auth_token
    if os.environ["DSQL_USER"] == "admin"
    else client.generate_db_connect_auth_token
)
print(sign(os.environ["DSQL_ENDPOINT"], os.environ["AWS_REGION"]))

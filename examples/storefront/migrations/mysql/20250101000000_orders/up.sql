CREATE TABLE orders (
    id                 BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    reference          VARCHAR(64) NOT NULL UNIQUE,
    form_token         VARCHAR(64) NOT NULL UNIQUE,
    product            VARCHAR(64) NOT NULL,
    quantity           INTEGER NOT NULL,
    total_cents        BIGINT NOT NULL,
    name               VARCHAR(255) NOT NULL,
    card_token         VARCHAR(64) NOT NULL,
    job_id             BIGINT,
    authorization_code VARCHAR(255),
    decline_reason     TEXT
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

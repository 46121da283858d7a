CREATE TABLE orders (
    id                 BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reference          TEXT NOT NULL UNIQUE,
    form_token         TEXT NOT NULL UNIQUE,
    product            TEXT NOT NULL,
    quantity           INTEGER NOT NULL,
    total_cents        BIGINT NOT NULL,
    name               TEXT NOT NULL,
    card_token         TEXT NOT NULL,
    job_id             BIGINT,
    authorization_code TEXT,
    decline_reason     TEXT
);
